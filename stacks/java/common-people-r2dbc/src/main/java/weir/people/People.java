package weir.people;

import org.springframework.data.repository.reactive.ReactiveCrudRepository;

/** Reads people with Spring Data R2DBC. */
interface People extends ReactiveCrudRepository<Person, Integer> {
}
