package weir.tickets;

import org.springframework.data.repository.reactive.ReactiveCrudRepository;

interface TicketUsers extends ReactiveCrudRepository<TicketUser, Integer> {
}
