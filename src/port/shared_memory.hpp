#pragma once

#include "port/stream.hpp"

namespace nexar::port {

/// Memory of this process that peers on the same host can read in place. Only this process can
/// write it. It is zero when it is made and disappears with the last process that uses it.
class SharedMemory {
public:
    virtual ~SharedMemory() = default;
    virtual Bytes bytes() noexcept = 0;
};

/// The same memory as a peer sees it. The owner may write at any time, so code that depends on a
/// word reads it once into a local variable and then checks it.
class PeerMemory {
public:
    virtual ~PeerMemory() = default;
    virtual ConstBytes bytes() const noexcept = 0;
};

}  // namespace nexar::port
