package weir.tickets;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

import reactor.core.publisher.Mono;

/** The ways to count an issued ticket. */
interface Counting {

    /** Adds one to the count of a ticket read in this transaction; returns false if the ticket is sold out. */
    Mono<Boolean> countUp(Ticket ticket);

    /** As in the study: writes the count that was read, plus one. Concurrent transactions lose updates. */
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

    /** One statement reads and writes, so the row's lock keeps other transactions out. */
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
