package weir.tickets;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

/** How an issued ticket is counted. */
interface Counting {

    /** Counts a ticket up, which was read in this transaction; false where it is sold out. */
    boolean countUp(Ticket ticket);

    /** As the study had it: JPA writes the count that was read, plus one. Of two transactions that read the same count, one is lost. */
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

    /** One statement reads and writes, so that the row's lock keeps the others out. */
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
