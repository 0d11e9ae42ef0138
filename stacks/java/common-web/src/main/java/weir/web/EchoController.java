package weir.web;

import java.util.Map;
import java.util.concurrent.CompletableFuture;

import org.springframework.core.task.AsyncTaskExecutor;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** The workload {@code echo}. As in the study, a pool of workers completes the response, on Tomcat and Netty. */
@RestController
class EchoController {

    record Receipt(boolean received, Map<String, Object> data) {
    }

    private final AsyncTaskExecutor workers;

    EchoController(AsyncTaskExecutor applicationTaskExecutor) {
        this.workers = applicationTaskExecutor;
    }

    @PostMapping("/bench/receive_data")
    CompletableFuture<Receipt> receiveData(@RequestBody Map<String, Object> data) {
        return CompletableFuture.supplyAsync(() -> new Receipt(true, data), workers);
    }
}
