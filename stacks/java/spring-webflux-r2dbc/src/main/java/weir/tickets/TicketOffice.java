package weir.tickets;

import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.server.ResponseStatusException;

import reactor.core.publisher.Mono;

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
    public Mono<IssuedTicket> issue(int userId, int ticketId) {
        return users.findById(userId)
                .switchIfEmpty(notFound())
                .flatMap(user -> tickets.findById(ticketId).switchIfEmpty(notFound()).flatMap(ticket -> issue(user, ticket)));
    }

    @Transactional(readOnly = true)
    public Mono<TicketAndUsers> show(int ticketId) {
        return tickets.findById(ticketId)
                .switchIfEmpty(notFound())
                .flatMap(ticket -> users.findTop50ByOrderById()
                        .map(user -> new TicketAndUsers.Name(user.id(), user.name()))
                        .collectList()
                        .map(shown -> new TicketAndUsers(ticket.id(), ticket.name(), ticket.limitCount(), shown)));
    }

    private Mono<IssuedTicket> issue(User user, Ticket ticket) {
        return counting.countUp(ticket)
                .filter(counted -> counted)
                .switchIfEmpty(Mono.error(() -> new ResponseStatusException(HttpStatus.CONFLICT, "sold out")))
                .flatMap(counted -> ticketUsers.save(TicketUser.of(user)))
                .thenReturn(new IssuedTicket(user.id(), user.name(), ticket.id(), ticket.name()));
    }

    private static <T> Mono<T> notFound() {
        return Mono.error(() -> new ResponseStatusException(HttpStatus.NOT_FOUND));
    }
}
