package weir.tickets;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

import reactor.core.publisher.Mono;

/** How an issued ticket is counted. */
interface Counting {

    /** Counts a ticket up, which was read in this transaction; false where it is sold out. */
    Mono<Boolean> countUp(Ticket ticket);

    /** As the study had it: writes the count that was read, plus one. Of two transactions that read the same count, one is lost. */
    @Component
    @ConditionalOnProperty(name = "counting", havingValue = "read-modify-write")
    class ReadModifyWrite implements Counting {

        private final Tickets tickets;

        ReadModifyWrite(Tickets tickets) {
            this.tickets = tickets;
        }

        @Override
        public Mono<Boolean> countUp(Ticket ticket) {
            return ticket.isSoldOut() ? Mono.just(false) : tickets.save(ticket.countedUp()).thenReturn(true);
        }
    }

    /** One statement reads and writes, so that the row's lock keeps the others out. */
    @Component
    @ConditionalOnProperty(name = "counting", havingValue = "atomic")
    class Atomic implements Counting {

        private final Tickets tickets;

        Atomic(Tickets tickets) {
            this.tickets = tickets;
        }

        @Override
        public Mono<Boolean> countUp(Ticket ticket) {
            return tickets.countUp(ticket.id()).map(changed -> changed == 1);
        }
    }
}
