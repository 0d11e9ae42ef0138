package weir.tickets;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

/** The ways to count an issued ticket. */
interface Counting {

    /** Adds one to the count of a ticket read in this transaction; returns false if the ticket is sold out. */
    boolean countUp(Ticket ticket);

    /** As in the study: JPA writes the count that was read, plus one. Concurrent transactions lose updates. */
    @Component
    @ConditionalOnProperty(name = "counting", havingValue = "read-modify-write")
    class ReadModifyWrite implements Counting {

        @Override
        public boolean countUp(Ticket ticket) {
            if (ticket.isSoldOut()) {
                return false;
            }
            ticket.countUp();
            return true;
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
        public boolean countUp(Ticket ticket) {
            return tickets.countUp(ticket.id()) == 1;
        }
    }
}
