package weir.people;

/** A row of {@code people}. */
public record Person(int id, String firstName, String lastName) {
}
