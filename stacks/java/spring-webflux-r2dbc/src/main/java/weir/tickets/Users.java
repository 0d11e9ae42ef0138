package weir.tickets;

import org.springframework.data.repository.reactive.ReactiveCrudRepository;

import reactor.core.publisher.Flux;

interface Users extends ReactiveCrudRepository<User, Integer> {

    Flux<User> findTop50ByOrderById();
}
