package weir.webflux;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Profile;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;

import reactor.core.publisher.Mono;

/** The workload {@code ping}. No thread waits for the upstream. */
@RestController
@Profile("!blocking")
class PingController {

    private final WebClient upstream;

    PingController(WebClient.Builder builder, @Value("${upstream.url}") String url) {
        this.upstream = builder.baseUrl(url).build();
    }

    @GetMapping("/ticket/ping")
    Mono<ResponseEntity<byte[]>> ping() {
        return upstream.get().uri("/delay").retrieve().toEntity(byte[].class)
            .map(answer -> ResponseEntity.ok().contentType(answer.getHeaders().getContentType()).body(answer.getBody()));
    }
}
