#include "runtime/baton.hpp"

#include "base/assert.hpp"

namespace nexar::runtime {

Baton::Locked::Locked(Baton& baton) : baton_(baton), lock_(baton.mutex_) {
    switch (baton_.fast_.exchange(Fast::in_members, std::memory_order_acq_rel)) {
        case Fast::nobody:
            baton_.holder_ = Holder::nobody;
            break;
        case Fast::waiter:
            baton_.holder_ = Holder::waiter;
            break;
        case Fast::in_members:
            break;
    }
}

Baton::Locked::~Locked() {
    const bool plain =
        baton_.first_ == nullptr && !baton_.called_ && !baton_.away_;  // nobody is interested
    if (plain && baton_.holder_ == Holder::nobody) {
        baton_.fast_.store(Fast::nobody, std::memory_order_release);
    }
}

Baton::Taken Baton::take_or_queue(Waiter& waiter) {
    const Locked lock(*this);
    return take_locked(waiter);
}

std::optional<Baton::Taken> Baton::take_idle(Waiter& waiter) {
    const Locked lock(*this);
    if (holder_ == Holder::waiter) return std::nullopt;
    return take_locked(waiter);
}

Baton::Taken Baton::take_locked(Waiter& waiter) {
    if (holder_ == Holder::waiter || holder_ == Holder::background) {
        push(waiter);
        return Taken::queued;
    }
    const bool stolen = holder_ == Holder::background_resting;
    holder_ = Holder::waiter;
    called_ = false;  // the holder checks wanted_ when it releases the baton
    count_use();
    return stolen ? Taken::stolen : Taken::free;
}

bool Baton::try_take() {
    const Locked lock(*this);
    if (holder_ != Holder::nobody) return false;
    holder_ = Holder::waiter;
    called_ = false;
    count_use();
    return true;
}

std::optional<Baton::Taken> Baton::try_take_or_steal() {
    if (take_free()) return Taken::free;
    const Locked lock(*this);
    if (holder_ == Holder::waiter || holder_ == Holder::background) return std::nullopt;
    const bool stolen = holder_ == Holder::background_resting;
    holder_ = Holder::waiter;
    called_ = false;
    count_use();
    return stolen ? Taken::stolen : Taken::free;
}

bool Baton::leave(Waiter& waiter) {
    const std::scoped_lock lock(mutex_);
    if (!waiter.in_line_) return true;
    unlink(waiter);
    return false;
}

Baton::Follow Baton::release_or_grant() {
    const Locked lock(*this);
    NEXAR_ASSERT(holder_ != Holder::nobody, "only the holder can release the baton");
    if (Waiter* const next = first_untold()) {
        unlink(*next);
        holder_ = Holder::waiter;
        count_use();
        return {.sleeper = next->grant(), .summon = false};
    }
    holder_ = Holder::nobody;
    if (wanted_.load(std::memory_order_acquire)) called_ = true;
    const bool summon = called_ || away_;
    away_ = false;
    return {.sleeper = nullptr, .summon = summon};
}

bool Baton::call() {
    const Locked lock(*this);
    if (holder_ != Holder::nobody) return false;
    called_ = true;
    away_ = false;
    return true;
}

Baton::Look Baton::look() {
    const Locked lock(*this);
    const std::uint64_t uses = uses_.load(std::memory_order_relaxed);
    const bool unused = uses == seen_;
    seen_ = uses;
    if (holder_ == Holder::nobody && (unused || called_)) {
        holder_ = Holder::background;
        called_ = false;
        return Look::took;
    }
    away_ = unused && holder_ == Holder::waiter;
    return away_ ? Look::away : Look::again;
}

bool Baton::rest() {
    const Locked lock(*this);
    NEXAR_ASSERT(holder_ == Holder::background, "only the background thread can rest");
    if (first_untold() != nullptr) return false;
    holder_ = Holder::background_resting;
    return true;
}

bool Baton::resume() {
    const Locked lock(*this);
    if (holder_ != Holder::background_resting) return false;
    holder_ = Holder::background;
    return true;
}

bool Baton::contended() const {
    if (in_line_.load(std::memory_order_relaxed) == 0) return false;
    const std::scoped_lock lock(mutex_);
    return first_untold() != nullptr;
}

void Baton::push(Waiter& waiter) noexcept {
    waiter.in_line_ = true;
    waiter.before_ = last_;
    waiter.behind_ = nullptr;
    (last_ == nullptr ? first_ : last_->behind_) = &waiter;
    last_ = &waiter;
    in_line_.fetch_add(1, std::memory_order_relaxed);
}

void Baton::unlink(Waiter& waiter) noexcept {
    (waiter.before_ == nullptr ? first_ : waiter.before_->behind_) = waiter.behind_;
    (waiter.behind_ == nullptr ? last_ : waiter.behind_->before_) = waiter.before_;
    waiter.in_line_ = false;
    in_line_.fetch_sub(1, std::memory_order_relaxed);
}

// A waiter that was notified is about to leave and would only pass the baton on.
Waiter* Baton::first_untold() const noexcept {
    Waiter* waiter = first_;
    while (waiter != nullptr && waiter->told()) waiter = waiter->behind_;
    return waiter;
}

}  // namespace nexar::runtime
