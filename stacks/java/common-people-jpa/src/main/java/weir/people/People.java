package weir.people;

import org.springframework.data.repository.ListCrudRepository;

/** The people, through Spring Data JPA. */
public interface People extends ListCrudRepository<Person, Integer> {
}
