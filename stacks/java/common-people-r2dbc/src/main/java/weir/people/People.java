package weir.people;

import org.springframework.data.repository.reactive.ReactiveCrudRepository;

/** The people, through Spring Data R2DBC. */
interface People extends ReactiveCrudRepository<Person, Integer> {
}
