package weir.tickets;

import org.springframework.data.annotation.Id;
import org.springframework.data.relational.core.mapping.Table;

@Table("tbl_user")
record User(@Id Integer id, String name, String password) {
}
