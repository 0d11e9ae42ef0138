package weir.tickets;

import java.util.List;

import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.server.ResponseStatusException;

/** Issues tickets and returns them. */
@Service
class TicketOffice {

    private final Users users;
    private final Tickets tickets;
    private final TicketUsers ticketUsers;
    private final Counting counting;

    TicketOffice(Users users, Tickets tickets, TicketUsers ticketUsers, Counting counting) {
        this.users = users;
        this.tickets = tickets;
        this.ticketUsers = ticketUsers;
        this.counting = counting;
    }

    @Transactional
    public IssuedTicket issue(int userId, int ticketId) {
        User user = users.findById(userId).orElseThrow(TicketOffice::notFound);
        Ticket ticket = tickets.findById(ticketId).orElseThrow(TicketOffice::notFound);
        if (!counting.countUp(ticket)) {
            throw new ResponseStatusException(HttpStatus.CONFLICT, "sold out");
        }
        ticketUsers.save(new TicketUser(user.id()));
        return new IssuedTicket(user.id(), user.name(), ticket.id(), ticket.name());
    }

    @Transactional(readOnly = true)
    public TicketAndUsers show(int ticketId) {
        Ticket ticket = tickets.findById(ticketId).orElseThrow(TicketOffice::notFound);
        List<TicketAndUsers.Name> shown = users.findTop50ByOrderById().stream().map(user -> new TicketAndUsers.Name(user.id(), user.name())).toList();
        return new TicketAndUsers(ticket.id(), ticket.name(), ticket.limitCount(), shown);
    }

    private static ResponseStatusException notFound() {
        return new ResponseStatusException(HttpStatus.NOT_FOUND);
    }
}
