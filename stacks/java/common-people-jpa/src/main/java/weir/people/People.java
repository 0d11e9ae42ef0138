package weir.people;

import org.springframework.data.repository.ListCrudRepository;

/** Reads people with Spring Data JPA. */
public interface People extends ListCrudRepository<Person, Integer> {
}
