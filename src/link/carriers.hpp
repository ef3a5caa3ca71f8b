#pragma once

#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "base/buffer_pool.hpp"
#include "link/common/carrier_options.hpp"
#include "port/link.hpp"

/// The kinds of links that a node can use. docs/links.md says what a new kind has to provide.
namespace nexar::link {

struct CarrierKind {
    std::string_view name;
    /// Opens a carrier of this kind; the pool must outlive it.
    Result<std::unique_ptr<port::Carrier>> (*open)(BufferPool& pool, CarrierOptions options);
};

/// All kinds. Nodes and seeds find each other over links of the first kind.
std::span<const CarrierKind> carrier_kinds() noexcept;

/// Opens a carrier of the first kind.
Result<std::unique_ptr<port::Carrier>> open_carrier(BufferPool& pool, CarrierOptions options);

/// A carrier of one of the other kinds, whose links are set up over a link of the first kind.
struct FurtherCarrier {
    std::string_view kind;
    std::unique_ptr<port::Carrier> carrier;
};
/// Opens a carrier of each of the other kinds that this machine has.
std::vector<FurtherCarrier> open_further_carriers(BufferPool& pool, const CarrierOptions& options);

}  // namespace nexar::link
