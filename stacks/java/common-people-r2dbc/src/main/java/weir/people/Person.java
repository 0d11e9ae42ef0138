package weir.people;

import org.springframework.data.annotation.Id;
import org.springframework.data.relational.core.mapping.Table;

/** A row of {@code people}. */
@Table("people")
public record Person(@Id Integer id, String firstName, String lastName) {
}
