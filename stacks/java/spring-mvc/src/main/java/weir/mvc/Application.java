package weir.mvc;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Spring MVC, with the workloads of {@code common-web}, which need only annotations. */
@SpringBootApplication(scanBasePackages = "weir")
public class Application {

    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }
}
