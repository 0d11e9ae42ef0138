package weir.people;

import java.util.ArrayList;
import java.util.List;

import io.smallrye.mutiny.Uni;
import io.vertx.mutiny.sqlclient.Pool;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;

/** The workload {@code people}. */
@Path("/people")
public class PeopleResource {

    private final Pool database;

    PeopleResource(Pool database) {
        this.database = database;
    }

    @GET
    public Uni<List<Person>> people() {
        return database.preparedQuery("SELECT id, first_name, last_name FROM people").execute().map(rows -> {
            List<Person> people = new ArrayList<>(rows.size());
            rows.forEach(row -> people.add(Person.from(row)));
            return people;
        });
    }
}
