"""Reads the few glTF features that the reference scenes use into numpy arrays: meshes in world
space, materials, the camera.
"""

import base64, io, json, os, struct
import numpy as np

COMPONENT = {5121: np.uint8, 5123: np.uint16, 5125: np.uint32, 5126: np.float32}
WIDTH = dict(SCALAR=1, VEC2=2, VEC3=3, VEC4=4)


def rotation(q):
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


class Document:
    def __init__(self, path):
        raw = open(path, "rb").read()
        self.folder, self.chunk = os.path.dirname(path), None
        if raw[:4] == b"glTF":
            length = struct.unpack_from("<I", raw, 12)[0]
            self.json = json.loads(raw[20 : 20 + length])
            self.chunk = raw[28 + length :]
        else:
            self.json = json.loads(raw)
        self.buffers = [self.bytes_of(b) for b in self.json.get("buffers", [])]

    def bytes_of(self, item):
        uri = item.get("uri")
        if uri is None:
            return self.chunk
        if uri.startswith("data:"):
            return base64.b64decode(uri.split(",", 1)[1])
        return open(os.path.join(self.folder, uri), "rb").read()

    def view(self, index):
        v = self.json["bufferViews"][index]
        start = v.get("byteOffset", 0)
        return self.buffers[v["buffer"]][start : start + v["byteLength"]]

    def array(self, index):
        a = self.json["accessors"][index]
        assert "sparse" not in a and not a.get("normalized"), "the reference scenes have neither"
        v = self.json["bufferViews"][a["bufferView"]]
        kind, width = np.dtype(COMPONENT[a["componentType"]]), WIDTH[a["type"]]
        data = self.view(a["bufferView"])
        stride = v.get("byteStride", kind.itemsize * width)
        return np.ndarray(
            (a["count"], width), kind, data, a.get("byteOffset", 0), (stride, kind.itemsize)
        ).copy()

    def image(self, texture):
        """A texture's 8-bit RGB pixels, or None."""
        from PIL import Image

        if texture is None:
            return None
        source = self.json["images"][self.json["textures"][texture["index"]]["source"]]
        data = self.view(source["bufferView"]) if "bufferView" in source else self.bytes_of(source)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    def material(self, index):
        m = self.json.get("materials", [{}])[index] if index is not None else {}
        p = m.get("pbrMetallicRoughness", {})
        strength = (
            m.get("extensions", {})
            .get("KHR_materials_emissive_strength", {})
            .get("emissiveStrength", 1.0)
        )
        return dict(
            base=p.get("baseColorFactor", [1, 1, 1, 1])[:3],
            metallic=p.get("metallicFactor", 1.0),
            roughness=p.get("roughnessFactor", 1.0),
            emission=[strength * e for e in m.get("emissiveFactor", [0, 0, 0])],
            base_image=self.image(p.get("baseColorTexture")),
            rough_image=self.image(p.get("metallicRoughnessTexture")),
            normal_image=self.image(m.get("normalTexture")),
        )

    def walk(self):
        """Every node of the default scene with its world matrix."""
        open_nodes = [
            (n, np.eye(4)) for n in self.json["scenes"][self.json.get("scene", 0)]["nodes"]
        ]
        while open_nodes:
            index, parent = open_nodes.pop()
            node = self.json["nodes"][index]
            local = np.eye(4)
            if "matrix" in node:
                local = np.array(node["matrix"], float).reshape(4, 4).T
            else:
                local[:3, :3] = rotation(node.get("rotation", [0, 0, 0, 1])) * np.array(
                    node.get("scale", [1, 1, 1])
                )
                local[:3, 3] = node.get("translation", [0, 0, 0])
            world = parent @ local
            yield node, world
            open_nodes += [(c, world) for c in node.get("children", [])]


def load(path):
    """-> (meshes, camera): meshes are dicts of position, normal, uv, faces, material; camera of
    to_world and yfov in degrees.
    """
    document, meshes, camera = Document(path), [], None
    for node, world in document.walk():
        if "camera" in node and camera is None:
            lens = document.json["cameras"][node["camera"]]["perspective"]
            camera = dict(to_world=world, yfov=np.degrees(lens["yfov"]))
        if "mesh" not in node:
            continue
        for primitive in document.json["meshes"][node["mesh"]]["primitives"]:
            assert primitive.get("mode", 4) == 4, "triangles only"
            a = primitive["attributes"]
            position = document.array(a["POSITION"]).astype(np.float64)
            faces = (
                document.array(primitive["indices"]).reshape(-1, 3)
                if "indices" in primitive
                else np.arange(len(position)).reshape(-1, 3)
            ).astype(np.uint32)
            position = position @ world[:3, :3].T + world[:3, 3]
            normal = None
            if "NORMAL" in a:
                normal = document.array(a["NORMAL"]).astype(np.float64) @ np.linalg.inv(
                    world[:3, :3]
                )
                normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
            uv = (
                document.array(a["TEXCOORD_0"])
                if "TEXCOORD_0" in a
                else np.zeros((len(position), 2))
            )
            meshes.append(
                dict(
                    position=position,
                    normal=normal,
                    uv=uv,
                    faces=faces,
                    material=document.material(primitive.get("material")),
                )
            )
    return meshes, camera
