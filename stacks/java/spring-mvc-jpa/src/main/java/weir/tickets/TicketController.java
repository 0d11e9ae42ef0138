package weir.tickets;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The workloads {@code ticket-issue} and {@code ticket}. */
@RestController
@RequestMapping("/ticket")
class TicketController {

    private final TicketOffice office;

    TicketController(TicketOffice office) {
        this.office = office;
    }

    @PostMapping("/issue")
    IssuedTicket issue(@RequestParam int userId, @RequestParam int ticketId) {
        return office.issue(userId, ticketId);
    }

    @GetMapping
    TicketAndUsers show(@RequestParam int ticketId) {
        return office.show(ticketId);
    }
}
