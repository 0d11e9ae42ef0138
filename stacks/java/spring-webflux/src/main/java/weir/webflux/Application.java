package weir.webflux;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Spring WebFlux; the workloads that need no more than annotations are those of {@code common-web}. */
@SpringBootApplication(scanBasePackages = "weir")
public class Application {

    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }
}
