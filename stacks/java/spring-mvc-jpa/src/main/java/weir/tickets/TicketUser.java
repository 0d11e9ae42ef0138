package weir.tickets;

import java.time.LocalDateTime;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** A row that gives a ticket to a user. */
@Entity
@Table(name = "tbl_ticket_user")
class TicketUser {

    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    private Integer id;

    private LocalDateTime createTime;

    private Integer userId;

    protected TicketUser() {
    }

    TicketUser(Integer userId) {
        this.createTime = LocalDateTime.now();
        this.userId = userId;
    }
}
