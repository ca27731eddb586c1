#!/usr/bin/env python3
"""Random OCI image layouts, and what their images are when somebody else applies the layers.

usage: oci_layouts.py DIRECTORY SEED COUNT

Writes DIRECTORY/N/layout, and DIRECTORY/N/expected: the listing of the root file system that GNU tar leaves behind when
it unpacks the layers in order, whiteouts done with rm beforehand (OCI image-spec, layer.md). Knows nothing of fitout.
"""
import gzip
import hashlib
import io
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tarfile

NAMES = ["a", "b", "c", "link", "dir", "größe", "n" * 120]


def blob(layout, data):
    digest = hashlib.sha256(data).hexdigest()
    os.makedirs(f"{layout}/blobs/sha256", exist_ok=True)
    with open(f"{layout}/blobs/sha256/{digest}", "wb") as out:
        out.write(data)
    return {"digest": "sha256:" + digest, "size": len(data)}


def document(layout, media_type, value):
    return {"mediaType": media_type, **blob(layout, json.dumps(value).encode())}


class Root:
    """The directory to which the layers are applied, and which says what may come next."""

    def __init__(self, path):
        self.path = path
        os.makedirs(path)

    def at(self, name):
        return os.path.join(self.path, name)

    def is_dir(self, name):
        return os.path.isdir(self.at(name)) and not os.path.islink(self.at(name))

    def names(self):
        out = []
        for top, dirs, files in os.walk(self.path):
            for name in dirs + files:
                out.append(os.path.relpath(os.path.join(top, name), self.path))
        return sorted(out)

    def remove(self, name):
        path = self.at(name)
        if os.path.islink(path) or os.path.isfile(path) or (os.path.lexists(path) and not os.path.isdir(path)):
            os.unlink(path)
        elif os.path.isdir(path):
            shutil.rmtree(path)

    def apply(self, members, tar):
        # Whiteouts first: they are about lower layers only.
        for name in sorted(members):
            parent, last = os.path.split(name)
            # A link of a lower layer is followed unless this layer lists a directory in its place.
            if not last.startswith(".wh.") or not os.path.isdir(self.at(parent)):
                continue
            if any(os.path.islink(self.at(up)) and up in members for up in ancestors(name)):
                continue
            if last == ".wh..wh..opq":
                for child in os.listdir(self.at(parent)):
                    self.remove(os.path.join(parent, child))
            else:
                self.remove(os.path.join(parent, last[4:]))
        # What changes its kind goes, with all that is below it.
        for name, kind in members.items():
            if not os.path.basename(name).startswith(".wh."):
                if not (kind == "dir" and self.is_dir(name)):
                    if kind != "link-out":
                        self.remove(name)
        subprocess.run(
            ["tar", "--numeric-owner", "--same-owner", "-p", "--exclude=.wh.*", "-C", self.path, "-xf", tar],
            check=True, stderr=subprocess.DEVNULL)

    def listing(self):
        lines = []
        inodes = {}
        for name in self.names():
            info = os.lstat(self.at(name))
            if not stat.S_ISDIR(info.st_mode) and info.st_nlink > 1:
                inodes.setdefault(info.st_ino, name)
        for name in self.names():
            path = self.at(name)
            info = os.lstat(path)
            mode = stat.S_IMODE(info.st_mode)
            owner = f"{info.st_uid}:{info.st_gid}"
            if stat.S_ISLNK(info.st_mode):
                lines.append(f"/{name} symlink {owner} {os.readlink(path)}")
            elif stat.S_ISDIR(info.st_mode):
                lines.append(f"/{name} directory {mode:04o} {owner}")
            else:
                with open(path, "rb") as data:
                    digest = hashlib.sha256(data.read()).hexdigest()
                link = f" link=/{inodes[info.st_ino]}" if info.st_nlink > 1 else ""
                lines.append(f"/{name} file {mode:04o} {owner} {int(info.st_mtime)} {digest}{link}")
        return "\n".join(lines) + "\n"


def ancestors(name):
    parts = name.split("/")[:-1]
    return ["/".join(parts[:i]) for i in range(1, len(parts) + 1)]


def layer(rng, root, tar_path):
    """A layer that changes the root at random. Gives its members: name -> kind."""
    members = {}
    tar = tarfile.open(tar_path, "w", format=rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
    present = root.names()
    files = []

    def usable(name):
        """Nothing of this layer or a lower one is in the way, but for links of lower layers that lead to directories."""
        for up in ancestors(name):
            if up in members:
                if members[up] != "dir":
                    return False
            elif os.path.lexists(root.at(up)) and not os.path.isdir(root.at(up)):
                return False
            elif os.path.islink(root.at(up)):
                # Where the link leads must not change in this layer, or the order would count.
                to = os.path.relpath(os.path.realpath(root.at(up)), root.path)
                if any(m == to or to.startswith(m + "/") or m.startswith(to + "/") for m in members):
                    return False
        if any(os.path.islink(root.at(up)) for up in ancestors(name)) and any(not usable_dir(up) for up in ancestors(name)):
            return False
        return name not in members and not any(m.startswith(name + "/") for m in members)

    def usable_dir(up):
        return up not in members or members[up] == "dir"

    def info(name, kind):
        entry = tarfile.TarInfo(rng.choice(["", "./"]) + name)
        entry.mode = rng.choice([0o644, 0o755, 0o600, 0o4755, 0o1777, 0o700])
        entry.uid, entry.gid, entry.mtime = rng.randrange(3), rng.randrange(70000, 70003), rng.randrange(1, 1 << 30)
        members[name] = kind
        return entry

    for _ in range(rng.randrange(5, 25)):
        depth = rng.choice([1, 1, 2, 2, 3])
        name = "/".join(rng.choice(NAMES) for _ in range(depth))
        if present and rng.random() < 0.5:
            name = rng.choice(present)
            if rng.random() < 0.4:
                name += "/" + rng.choice(NAMES)
        if len(name) > 240 or not usable(name):
            continue
        what = rng.choice(["file", "file", "dir", "dir", "symlink", "hard", "out", "whiteout", "whiteout", "opaque"])
        through_link = any(os.path.islink(root.at(up)) for up in ancestors(name))
        if what == "file":
            data = rng.randbytes(rng.choice([0, 1, 511, 512, 5000]))
            entry = info(name, "file")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
            files.append(name)
        elif what == "dir":
            entry = info(name, "dir")
            entry.type = tarfile.DIRTYPE
            tar.addfile(entry)
        elif what == "symlink":
            entry = info(name, "symlink")
            entry.type, entry.linkname = tarfile.SYMTYPE, rng.choice(NAMES[:5])
            tar.addfile(entry)
        elif what == "hard" and files:
            entry = info(name, "file")
            entry.type, entry.linkname = tarfile.LNKTYPE, rng.choice(files)
            tar.addfile(entry)
        elif what == "out" and not through_link:
            lower = [n for n in present if os.path.isfile(root.at(n)) and not os.path.islink(root.at(n)) and n != name]
            # Neither the name nor anything above it is touched by this layer, before or after: the order would count.
            lower = [n for n in lower if not any(n == m or n.startswith(m + "/") for m in members)]
            lower = [n for n in lower if not n.startswith(name + "/") and not any(os.path.islink(root.at(u)) for u in ancestors(n))]
            # A whiteout of this layer hides it: nothing would be left to link to.
            def hidden(n):
                return any(
                    os.path.join(os.path.dirname(up), ".wh." + os.path.basename(up)) in members
                    or up + "/.wh..wh..opq" in members
                    for up in ancestors(n) + [n])
            lower = [n for n in lower if not hidden(n)]
            if lower:
                target = rng.choice(lower)
                entry = info(name, "file")
                entry.type, entry.linkname = tarfile.LNKTYPE, target
                tar.addfile(entry)
                members[target] = "link-out"
                for up in ancestors(target):
                    members.setdefault(up, "link-out")
        elif what == "whiteout" and not through_link:
            parent, last = os.path.split(name)
            if members.get(name) is None:
                white = os.path.join(parent, ".wh." + last)
                if white not in members and len(last) < 200:
                    tar.addfile(info(white, "file"))
        elif what == "opaque" and not through_link:
            white = name + "/.wh..wh..opq"
            if white not in members and usable(white):
                tar.addfile(info(white, "file"))
    tar.close()
    return {name: kind for name, kind in members.items() if kind != "link-out"}


def image(directory, seed):
    rng = random.Random(seed)
    layout, root = f"{directory}/layout", Root(f"{directory}/root")
    layers, diff_ids = [], []
    for _ in range(rng.randrange(2, 6)):
        tar_path = f"{directory}/layer.tar"
        members = layer(rng, root, tar_path)
        root.apply(members, tar_path)
        with open(tar_path, "rb") as plain:
            data = plain.read()
        diff_ids.append("sha256:" + hashlib.sha256(data).hexdigest())
        how = rng.choice(["", "+gzip", "+zstd"])
        if how == "+gzip":
            data = gzip.compress(data, mtime=0)
        elif how == "+zstd":
            data = subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout
        layers.append({"mediaType": "application/vnd.oci.image.layer.v1.tar" + how, **blob(layout, data)})
    config = document(layout, "application/vnd.oci.image.config.v1+json", {
        "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": diff_ids}})
    manifest = document(layout, "application/vnd.oci.image.manifest.v1+json", {
        "schemaVersion": 2, "config": config, "layers": layers})
    with open(f"{layout}/oci-layout", "w") as out:
        json.dump({"imageLayoutVersion": "1.0.0"}, out)
    with open(f"{layout}/index.json", "w") as out:
        json.dump({"schemaVersion": 2, "manifests": [manifest]}, out)
    with open(f"{directory}/expected", "w") as out:
        out.write(root.listing())


def main():
    os.umask(0o022)
    directory, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    made = 0
    while made < count:
        os.makedirs(f"{directory}/{made}")
        try:
            image(f"{directory}/{made}", seed)
            made += 1
        except subprocess.CalledProcessError:
            # A layer that GNU tar cannot unpack either (a name through a link that leads to no directory): another one.
            shutil.rmtree(f"{directory}/{made}")
        seed += 1


main()
