#pragma once

namespace nexar::security {

/// Returns true if this CPU has instructions for AES and for the carry-less multiplication that GCM
/// needs. Without them ChaCha20-Poly1305 is several times faster, and table-based AES leaks through
/// timing.
bool cpu_has_aes() noexcept;

}  // namespace nexar::security
