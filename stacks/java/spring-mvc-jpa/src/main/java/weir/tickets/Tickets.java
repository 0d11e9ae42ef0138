package weir.tickets;

import org.springframework.data.jpa.repository.Modifying;
import org.springframework.data.jpa.repository.Query;
import org.springframework.data.repository.CrudRepository;

interface Tickets extends CrudRepository<Ticket, Integer> {

    /** Adds one to the count in the database; returns 0 if the ticket is sold out. */
    @Modifying
    @Query("UPDATE Ticket t SET t.count = t.count + 1 WHERE t.id = :id AND t.count < t.limitCount")
    int countUp(Integer id);
}
