package weir.webflux;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Profile;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/** A common mistake: a blocking client on an event loop, so all connections of the loop wait for the upstream. */
@RestController
@Profile("blocking")
class BlockingPingController {

    private final RestClient upstream;

    BlockingPingController(@Value("${upstream.url}") String url) {
        // The JDK's client may block an event loop. Spring's choice, Reactor Netty's client, refuses to.
        this.upstream = RestClient.builder().baseUrl(url).requestFactory(new JdkClientHttpRequestFactory()).build();
    }

    @GetMapping("/ticket/ping")
    ResponseEntity<byte[]> ping() {
        ResponseEntity<byte[]> answer = upstream.get().uri("/delay").retrieve().toEntity(byte[].class);
        return ResponseEntity.ok().contentType(answer.getHeaders().getContentType()).body(answer.getBody());
    }
}
