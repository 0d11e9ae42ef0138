package weir.tickets;

import java.time.LocalDateTime;

import org.springframework.data.annotation.Id;
import org.springframework.data.relational.core.mapping.Table;

/** A row that gives a ticket to a user. */
@Table("tbl_ticket_user")
record TicketUser(@Id Integer id, LocalDateTime createTime, Integer userId) {

    static TicketUser of(User user) {
        return new TicketUser(null, LocalDateTime.now(), user.id());
    }
}
