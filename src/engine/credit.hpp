#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.hpp"

namespace nexar::engine {

/// What may be under way, unmatched, from one side to the other; and what one message takes of it
/// until it is matched.
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

    /// False: more than was ever taken, which only a peer that breaks the rules gives back.
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

/// The receiver's side of a pool: what came and was not given back, and what of it is to be.
class CreditIn {
public:
    explicit CreditIn(const Amount& limit) noexcept : limit_(limit) {}

    /// A message came. False: the sender had no credit for it.
    [[nodiscard]] bool came(const Amount& charge) noexcept {
        if (charge.payload > limit_.payload - held_.payload ||
            charge.headers > limit_.headers - held_.headers) {
            return false;
        }
        held_.payload += charge.payload;
        held_.headers += charge.headers;
        return true;
    }

    /// The message was matched. True: enough has come together to give it back now.
    bool matched(const Amount& charge) noexcept {
        owed_.payload += charge.payload;
        owed_.headers += charge.headers;
        // A quarter: so few frames that they do not show, and never so much that a sender waits
        // while the receiver sits on its credit.
        return owed_.payload >= limit_.payload / 4 ||
               owed_.headers >= std::max(limit_.headers / 4, 1U);
    }

    const Amount& owed() const noexcept { return owed_; }

    /// What was owed was written to the sender.
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
