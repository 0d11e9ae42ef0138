package weir.tickets;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

@Entity
@Table(name = "tbl_ticket")
class Ticket {

    @Id
    private Integer id;

    private String name;

    private int count;

    private int limitCount;

    Integer id() {
        return id;
    }

    String name() {
        return name;
    }

    int limitCount() {
        return limitCount;
    }

    boolean isSoldOut() {
        return count >= limitCount;
    }

    void countUp() {
        count++;
    }
}
