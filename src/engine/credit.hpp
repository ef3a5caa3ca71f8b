#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.hpp"

namespace nexar::engine {

/// An amount of credit: the limit on unmatched data in flight in one direction, or the part of it
/// that one message uses until it is matched.
struct Amount {
    std::uint64_t payload = 0;  // bytes
    std::uint32_t headers = 0;
};

/// The sender's side of a pool: what may still be sent.
class CreditOut {
public:
    explicit CreditOut(const Amount& limit) noexcept : limit_(limit), left_(limit) {}

    bool take(const Amount& charge) noexcept {
        if (left_.payload < charge.payload || left_.headers < charge.headers) return false;
        left_.payload -= charge.payload;
        left_.headers -= charge.headers;
        return true;
    }

    /// Returns false if the peer violates the protocol by giving back more than was taken.
    [[nodiscard]] bool give_back(std::uint64_t payload, std::uint32_t headers) noexcept {
        if (payload > limit_.payload - left_.payload || headers > limit_.headers - left_.headers) {
            return false;
        }
        left_.payload += payload;
        left_.headers += headers;
        return true;
    }

private:
    Amount limit_;
    Amount left_;
};

/// The receiver's side of a pool: credit in use by arrived messages, and the part of it that this
/// side owes to the sender.
class CreditIn {
public:
    explicit CreditIn(const Amount& limit) noexcept : limit_(limit) {}

    /// Counts a message that arrived. Returns false if the sender had no credit for it.
    [[nodiscard]] bool came(const Amount& charge) noexcept {
        if (charge.payload > limit_.payload - held_.payload ||
            charge.headers > limit_.headers - held_.headers) {
            return false;
        }
        held_.payload += charge.payload;
        held_.headers += charge.headers;
        return true;
    }

    /// Counts a message that was matched. Returns true when enough is owed to give it back now.
    bool matched(const Amount& charge) noexcept {
        owed_.payload += charge.payload;
        owed_.headers += charge.headers;
        // A quarter needs few frames, and a sender never waits for credit that the receiver
        // withholds.
        return owed_.payload >= limit_.payload / 4 ||
               owed_.headers >= std::max(limit_.headers / 4, 1U);
    }

    const Amount& owed() const noexcept { return owed_; }

    /// The owed credit was written to the sender.
    void gave_back() noexcept {
        NEXAR_ASSERT(owed_.payload <= held_.payload && owed_.headers <= held_.headers);
        held_.payload -= owed_.payload;
        held_.headers -= owed_.headers;
        owed_ = {};
    }

private:
    Amount limit_;
    Amount held_{};
    Amount owed_{};
};

}  // namespace nexar::engine
