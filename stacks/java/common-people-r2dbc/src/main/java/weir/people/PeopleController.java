package weir.people;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

import reactor.core.publisher.Flux;

/** The workload {@code people}, for Spring WebFlux and Spring MVC. MVC holds no thread while the rows come. */
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
