package weir.tickets;

import org.springframework.data.r2dbc.repository.Modifying;
import org.springframework.data.r2dbc.repository.Query;
import org.springframework.data.repository.reactive.ReactiveCrudRepository;

import reactor.core.publisher.Mono;

interface Tickets extends ReactiveCrudRepository<Ticket, Integer> {

    /** Adds one to the count in the database; returns 0 if the ticket is sold out. */
    @Modifying
    @Query("UPDATE tbl_ticket SET count = count + 1 WHERE id = :id AND count < limit_count")
    Mono<Integer> countUp(Integer id);
}
