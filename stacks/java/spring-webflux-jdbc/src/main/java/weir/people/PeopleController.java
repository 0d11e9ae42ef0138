package weir.people;

import java.util.List;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** The workload {@code people}. JDBC blocks, so it runs on Reactor's bounded pool of threads. */
@RestController
class PeopleController {

    private final People people;

    PeopleController(People people) {
        this.people = people;
    }

    @GetMapping("/people")
    Mono<List<Person>> people() {
        return Mono.fromCallable(people::findAll).subscribeOn(Schedulers.boundedElastic());
    }
}
