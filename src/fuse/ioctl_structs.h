// Checks the structures of include/mdfs/ioctl.h, and converts them to the core's types and back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "device/modelled_machine.h"
#include "engine/engine.h"
#include "geometry/geometry.h"
#include "mdfs/ioctl.h"
#include "streams/streams.h"
#include "views/view_file.h"
#include "volume/disk_statistics.h"
#include "volume/operations.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// Every field is checked; kInvalidArgument names the invalid one.
Result<volume::ImageOptions> to_image_options(const mdfs_ioc_geometry& in);
// kOutOfRange: the image has no such level, or the window is outside of it.
Result<views::WindowName> to_window(const geometry::Geometry& image, const mdfs_ioc_window& in);

// kInvalidArgument also where an answer field is not zero. `ino`: the open file.
Result<volume::OperationRequest> to_operation_request(const mdfs_ioc_operation& in, volume::Ino ino);
mdfs_ioc_operation to_ioc_operation(const volume::OperationRecord& record, const mdfs_ioc_operation& asked,
                                    std::uint32_t block_size);

Status check_disks_request(const mdfs_ioc_disks& in);
mdfs_ioc_disks to_ioc_disks(const std::vector<volume::DiskStatistic>& disks, std::uint32_t flags);

mdfs_ioc_geometry to_ioc_geometry(const volume::ImageInfo& info);
mdfs_ioc_plan to_ioc_plan(const engine::WindowPlan& plan);
mdfs_ioc_volume to_ioc_volume(volume::Volume& volume);
mdfs_ioc_fragmentation to_ioc_fragmentation(const volume::VolumeFragmentation& fragmentation,
                                            const volume::HomeState& home);
mdfs_ioc_layout to_ioc_layout(const volume::LayoutPage& page);
Status check_channel_request(const mdfs_ioc_channel& in);
Status check_zones_request(const mdfs_ioc_zones& in);
Status check_levels_request(const mdfs_ioc_levels& in);
mdfs_ioc_levels to_ioc_levels(const volume::LevelsInfo& info);
Status check_protection_request(const mdfs_ioc_protection& in);
mdfs_ioc_protection to_ioc_protection(const volume::Protection& protection, bool is_converting);
// kInvalidArgument: the action, or a field that it does not take.
Status check_stream_request(const mdfs_ioc_stream& in);
Status check_frame_request(const mdfs_ioc_frame& in);
Result<streams::StreamRequest> to_stream_request(const geometry::Geometry& image, const mdfs_ioc_stream& in);
// `asked` gives the action.
mdfs_ioc_stream to_ioc_stream(const streams::StreamInfo& info, const mdfs_ioc_stream& asked);
Status check_lost_request(const mdfs_ioc_lost& in);
mdfs_ioc_lost to_ioc_lost(const volume::LostFiles& found);
// The rows of a disk's zones from `first` on; may wait for the disk.
Result<mdfs_ioc_zones> next_zones(const store::Members& members, store::BlockSpace& space, std::uint32_t number,
                                  std::uint64_t first);
mdfs_ioc_model to_ioc_model(const device::ModelledReport& report);

}  // namespace mdfs::fuse
