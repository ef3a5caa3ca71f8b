#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <new>
#include <nexar/shared_buffer.hpp>

#include "base/quantity.hpp"
#include "engine/memory_buffers.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/node_access.hpp"

namespace nexar::detail {

namespace {

constexpr std::align_val_t kAlignment{4096};

struct Free {
    void operator()(void* memory) const noexcept { ::operator delete(memory, kAlignment); }
};
using Ordinary = std::unique_ptr<void, Free>;

Error no_memory(std::size_t bytes, const std::string& why) {
    return {Errc::out_of_memory,
            fmt::format("no {} for a shared buffer: {}", format_size(bytes), why),
            {.operation = "allocate"}};
}

Ordinary ordinary_memory(std::size_t bytes) {
    Ordinary memory(::operator new(bytes, kAlignment, std::nothrow));
    if (memory == nullptr) throw no_memory(bytes, "the system has not enough memory");
    std::memset(memory.get(), 0, bytes);
    return memory;
}

}  // namespace

struct SharedRoom::Body {
    std::shared_ptr<NodeBody> node{};
    std::shared_ptr<port::SharedMemory> memory{};  // nullptr: ordinary memory
    std::uint64_t name = 0;
    Ordinary ordinary{};

    Body() = default;
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;
    ~Body() {
        if (memory == nullptr) return;
        if (node->progress().forked()) {
            runtime::keep_in_child(std::move(node));
            return;
        }
        const NodeAccess access(*node);
        access->remove_buffer(name);
    }
};

SharedRoom::SharedRoom() noexcept = default;
SharedRoom::SharedRoom(SharedRoom&& other) noexcept
    : body_(std::move(other.body_)), data_(std::exchange(other.data_, nullptr)) {}
SharedRoom& SharedRoom::operator=(SharedRoom&& other) noexcept {
    body_ = std::move(other.body_);
    data_ = std::exchange(other.data_, nullptr);
    return *this;
}
SharedRoom::~SharedRoom() = default;

bool SharedRoom::shared() const noexcept {
    return body_ != nullptr && body_->memory != nullptr;
}

SharedRoom::SharedRoom(const std::shared_ptr<NodeBody>& node, std::size_t count,
                       std::size_t element) {
    constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
    if (count > kMost / element) {
        throw Error(Errc::invalid_argument,
                    fmt::format("{} elements of {} bytes exceed the address space", count, element),
                    {.operation = "allocate"});
    }
    const std::size_t bytes = count * element;
    auto made = std::make_unique<Body>();
    made->node = node;
    {
        const NodeAccess access(*node);
        node->check_not_aborted("allocate");
        if (node->closing()) {
            throw Error(Errc::closed, "the node is closed", {.operation = "allocate"});
        }
        if (bytes == 0) return;
        auto memory = node->allocate_buffer(engine::whole_buffer(bytes));
        if (memory) {
            made->memory = *std::move(memory);
            made->name = access->add_buffer(made->memory);
        } else if (memory.error().code() != Errc::unsupported) {
            throw no_memory(bytes, memory.error().cause());
        }
    }
    if (made->memory != nullptr) {
        data_ = made->memory->bytes().data();
    } else {
        made->ordinary = ordinary_memory(bytes);
        data_ = made->ordinary.get();
    }
    body_ = std::move(made);
}

}  // namespace nexar::detail
