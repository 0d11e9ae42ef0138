package weir.tickets;

import org.springframework.data.repository.CrudRepository;

interface TicketUsers extends CrudRepository<TicketUser, Integer> {
}
