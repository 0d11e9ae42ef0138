package weir.people;

import java.util.List;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The workload {@code people}. The request's thread waits for the database. */
@RestController
class PeopleController {

    private final People people;

    PeopleController(People people) {
        this.people = people;
    }

    @GetMapping("/people")
    List<Person> people() {
        return people.findAll();
    }
}
