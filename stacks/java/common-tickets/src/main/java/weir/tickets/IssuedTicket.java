package weir.tickets;

/** The response of the workload {@code ticket-issue}. */
public record IssuedTicket(int userId, String userName, int ticketId, String ticketName) {
}
