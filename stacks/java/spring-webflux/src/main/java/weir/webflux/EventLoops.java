package weir.webflux;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;
import org.springframework.http.client.ReactorResourceFactory;

import reactor.netty.resources.LoopResources;

/** Sets the number of event loops. With blocking calls each event loop serves one request at a time. */
@Configuration
@Profile("blocking")
class EventLoops {

    @Bean
    ReactorResourceFactory reactorResourceFactory(@Value("${event-loops}") int count) {
        ReactorResourceFactory factory = new ReactorResourceFactory();
        factory.setUseGlobalResources(false);
        factory.setLoopResourcesSupplier(() -> LoopResources.create("reactor-http", count, true));
        return factory;
    }
}
