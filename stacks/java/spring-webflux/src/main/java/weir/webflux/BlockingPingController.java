package weir.webflux;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Profile;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/** What must not be done: a client that blocks, called on an event loop, so that every connection of that loop waits for the upstream. */
@RestController
@Profile("blocking")
class BlockingPingController {

    private final RestClient upstream;

    BlockingPingController(@Value("${upstream.url}") String url) {
        // Reactor Netty's client, which would be taken, refuses to block an event loop; the JDK's does as it is told.
        this.upstream = RestClient.builder().baseUrl(url).requestFactory(new JdkClientHttpRequestFactory()).build();
    }

    @GetMapping("/ticket/ping")
    ResponseEntity<byte[]> ping() {
        ResponseEntity<byte[]> answer = upstream.get().uri("/delay").retrieve().toEntity(byte[].class);
        return ResponseEntity.ok().contentType(answer.getHeaders().getContentType()).body(answer.getBody());
    }
}
