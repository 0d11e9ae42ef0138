package weir.mvc;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestTemplate;

/** The workload {@code ping}. The request's thread waits for the upstream. */
@RestController
class PingController {

    private final RestTemplate upstream;

    PingController(RestTemplateBuilder builder, @Value("${upstream.url}") String url) {
        this.upstream = builder.rootUri(url).build();
    }

    @GetMapping("/ticket/ping")
    ResponseEntity<byte[]> ping() {
        ResponseEntity<byte[]> answer = upstream.getForEntity("/delay", byte[].class);
        return ResponseEntity.ok().contentType(answer.getHeaders().getContentType()).body(answer.getBody());
    }
}
