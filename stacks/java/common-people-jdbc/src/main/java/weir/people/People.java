package weir.people;

import java.util.List;

import org.springframework.jdbc.core.DataClassRowMapper;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.stereotype.Repository;

/** Reads people with JdbcTemplate, without JPA. */
@Repository
public class People {

    private static final RowMapper<Person> PERSON = new DataClassRowMapper<>(Person.class);

    private final JdbcTemplate jdbc;

    People(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    public List<Person> findAll() {
        return jdbc.query("SELECT id, first_name, last_name FROM people", PERSON);
    }
}
