# JupyterLab with the kernel and the lessons, for one learner or as the image of a JupyterHub:
#   docker build --tag kernetes . && docker run --rm --publish 127.0.0.1:8888:8888 kernetes
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3-pip && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip3 wheel --no-deps --wheel-dir /wheels .

FROM python:3.13-slim-bookworm
COPY --from=build /wheels /wheels
# jupyterhub brings jupyterhub-singleuser, which a hub starts instead of the command below.
RUN pip install --no-cache-dir /wheels/*.whl jupyterlab==4.6.6 jupyterhub==5.* && rm -rf /wheels
RUN useradd --create-home --uid 1000 learner
USER learner
WORKDIR /lessons
COPY --chown=learner notebooks .
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--ServerApp.root_dir=/lessons"]
