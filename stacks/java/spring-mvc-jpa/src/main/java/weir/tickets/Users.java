package weir.tickets;

import java.util.List;

import org.springframework.data.repository.CrudRepository;

interface Users extends CrudRepository<User, Integer> {

    List<User> findTop50ByOrderById();
}
