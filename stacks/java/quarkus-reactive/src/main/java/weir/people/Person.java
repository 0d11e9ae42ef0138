package weir.people;

import io.vertx.mutiny.sqlclient.Row;

/** A row of {@code people}. */
public record Person(int id, String firstName, String lastName) {

    static Person from(Row row) {
        return new Person(row.getInteger("id"), row.getString("first_name"), row.getString("last_name"));
    }
}
