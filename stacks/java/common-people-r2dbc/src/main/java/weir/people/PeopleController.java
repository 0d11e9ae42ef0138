package weir.people;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

import reactor.core.publisher.Flux;

/** The workload {@code people}, the same under Spring MVC, which collects the rows without holding a thread, and under Spring WebFlux. */
@RestController
class PeopleController {

    private final People people;

    PeopleController(People people) {
        this.people = people;
    }

    @GetMapping("/people")
    Flux<Person> people() {
        return people.findAll();
    }
}
