package weir.tickets;

import org.springframework.data.annotation.Id;
import org.springframework.data.relational.core.mapping.Table;

@Table("tbl_ticket")
record Ticket(@Id Integer id, String name, int count, int limitCount) {

    boolean isSoldOut() {
        return count >= limitCount;
    }

    Ticket countedUp() {
        return new Ticket(id, name, count + 1, limitCount);
    }
}
