"""What `./dev bench` measures, a module for each group of rows."""
# SPDX-License-Identifier: Apache-2.0
