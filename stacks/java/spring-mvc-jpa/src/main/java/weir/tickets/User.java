package weir.tickets;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

@Entity
@Table(name = "tbl_user")
class User {

    @Id
    private Integer id;

    private String name;

    private String password;

    Integer id() {
        return id;
    }

    String name() {
        return name;
    }
}
