package weir.web;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The workload {@code cpu}. It hashes for a few hundred microseconds, on the thread that took the request. */
@RestController
class CpuController {

    private static final int ROUNDS = 1000;

    record Hash(String digest) {
    }

    @GetMapping("/cpu")
    Hash cpu(@RequestParam String text) throws NoSuchAlgorithmException {
        MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
        byte[] digest = text.getBytes(StandardCharsets.UTF_8);
        for (int round = 0; round < ROUNDS; round++) {
            digest = sha256.digest(digest);
        }
        return new Hash(HexFormat.of().formatHex(digest));
    }
}
