package weir.tickets;

import java.util.List;

/** The response of the workload {@code ticket}. */
public record TicketAndUsers(int id, String name, int limitCount, List<Name> users) {

    /** A user without the password. */
    public record Name(int id, String name) {
    }
}
